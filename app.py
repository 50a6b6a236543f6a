"""Start here: `streamlit run app.py`. The server alone: the pages, and the routes beside them.

It is loaded before the secrets file is, which may set limits of the runs: nothing here may know of runs.
"""

import streamlit as st

from pages.stream.routes import lifespan, middleware, routes

# Streamlit finds this line by reading it, so no function
app = st.App("pages/main.py", routes=routes(), lifespan=lifespan, middleware=middleware())

if __name__ == "__main__":
    raise SystemExit("Start the app with: streamlit run app.py")
