"""A cloud that runs the real Nova becomes a cloud of Causeway, host by host, and no guest notices.

`nova_cloud` starts Nova (two cells, four hosts, from ``scripts/install-nova.sh``) with real guests beside the real services;
`population` fills it with servers in many states; `outside` looks at the guests from where neither Nova nor Causeway is asked.
"""
