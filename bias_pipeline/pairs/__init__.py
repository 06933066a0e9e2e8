"""Sets of pictures that differ only in a person's group: do captions change with the group?"""
