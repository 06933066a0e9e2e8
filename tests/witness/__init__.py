"""A second witness: LIC, Leakage, DBAC and DPA computed apart from ``bias_pipeline``.

The witness follows the definitions and none of the code: its own tokens, masks, vocabulary and
priors in plain Python, scikit-learn's attackers, and scikit-learn's splits with seeds of their own.
Of ``bias_pipeline`` it takes the images that a data set reads, of ``conf/`` the word lists;
``test_apart.py`` holds it to that. ``cases.py`` alone asks ``bias_pipeline`` for numbers, and
``agreement.py`` says when two numbers agree.
"""
