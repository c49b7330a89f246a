"""Find passages: dense and keyword search, fused, filtered and reranked."""
