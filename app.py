"""Start the app with `streamlit run app.py`. This file declares the pages' script and the other routes.

Streamlit loads it before the secrets file, which may set limits of runs: do not import `transformer.runs`
here.
"""

import streamlit as st

from pages.stream.routes import lifespan, middleware, routes

# Streamlit finds this assignment by parsing the file, so keep it outside of functions
app = st.App("pages/main.py", routes=routes(), lifespan=lifespan, middleware=middleware())

if __name__ == "__main__":
    raise SystemExit("Start the app with: streamlit run app.py")
