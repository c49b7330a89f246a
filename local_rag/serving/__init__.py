"""One thread owns a library; every interface sends it jobs and reads their events."""
