"""GRIT (Nguyen et al. 2022): a captioner with grid and region features."""
