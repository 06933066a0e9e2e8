"""Seven published captioners compared with people at equal style."""
