"""GRIT (Nguyen et al. 2022): a captioner that looks at a grid and at regions."""
