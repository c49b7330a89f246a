"""Let other programs use a library: tools of the Model Context Protocol, none of which writes."""
