"""Here is a request of the Model Context Protocol: give me passages, documents or an answer."""
