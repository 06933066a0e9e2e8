"""The pixels of ``scenes``: pictograms, with a mask for each thing."""
