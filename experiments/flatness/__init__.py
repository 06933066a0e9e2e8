"""What changes a score: the style of captions, or bias?"""
