"""Verifying an executor on a selection of all the calls that it suits."""
