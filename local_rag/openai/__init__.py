"""Here is a chat request in OpenAI's protocol: give me an answer from the library."""
