"""The RPC methods of the super conductor, for the API and others. (Operations are not called, but requested in the journal.)"""
