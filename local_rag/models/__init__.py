"""Find, fetch and load models: what is known of each, which one a profile means, embedders and rerankers."""
