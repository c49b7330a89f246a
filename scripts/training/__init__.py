"""How the reranker of the profile `starter` was trained: mine pairs, train, export."""
