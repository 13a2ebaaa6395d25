"""Files as data sets: memory-mapped arrays, tables, folders of images, lines of text."""
