"""An app of one button: what Streamlit itself needs for a first page."""

import streamlit as st

with st.container(key="run_start"):
    st.button("Start")
