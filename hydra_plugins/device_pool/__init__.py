"""A Hydra launcher for one machine with several GPUs: each job has a device of its own.

It knows nothing of the application whose jobs it runs::

    python app.py -m hydra/launcher=device_pool hydra.launcher.devices=[0,1] seed=0,1,2,3
"""
