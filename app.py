"""Start here: `streamlit run app.py`. Names the pages and runs the chosen one."""

import streamlit as st

st.set_page_config(page_title="Headlight: watch attention heads learn", page_icon="🔦", layout="wide")

pages = {
    "train": st.Page("pages/train.py", title="Watch", icon=":material/visibility:", default=True),
    "explore": st.Page("pages/explore.py", title="Ask", icon=":material/question_answer:"),
    "anatomy": st.Page("pages/anatomy.py", title="Look inside", icon=":material/biotech:"),
    "masks": st.Page("pages/masks.py", title="Masks", icon=":material/grid_on:"),
    "data": st.Page("pages/data.py", title="Your data", icon=":material/dataset:"),
}
page = st.navigation(list(pages.values()), position="top")

st.session_state["_entered"] = True
target, query = st.session_state.pop("_deep_link", (None, None))
if target:
    st.switch_page(pages[target], query_params=query)
page.run()
