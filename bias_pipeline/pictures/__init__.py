"""Captioners that see pictures: as attackers (ImageCaptioner2), and explained by Grad-CAM."""
