"""Convert a file of each format to text: one module per family of formats, one function per format."""
