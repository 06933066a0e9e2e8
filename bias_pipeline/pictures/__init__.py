"""Captioners that see pictures (prompted, fitted, or behind a server).

Also ImageCaptioner2 and Grad-CAM.
"""
