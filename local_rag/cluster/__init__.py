"""Past one machine: workers on Ray, an index in Qdrant. The only room that knows either."""
