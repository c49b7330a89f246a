"""Here is a collection too large for one machine: index it with Ray workers, search it in Qdrant.

The only package that uses Ray and Qdrant.
"""
