"""Captioners that see pictures, also as attackers (ImageCaptioner2), and Grad-CAM."""
