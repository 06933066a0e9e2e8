"""Captioners that see pictures: prompted, fitted, served; ImageCaptioner2 and Grad-CAM."""
