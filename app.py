"""Start here: `streamlit run app.py`. Names the pages, lets in whoever may come, and runs the chosen one."""

import streamlit as st

from pages.parts.login import login

st.set_page_config(page_title="Headlight: watch attention heads learn", layout="wide")

pages = {
    "train": st.Page("pages/train.py", title="Watch", default=True),
    "explore": st.Page("pages/explore.py", title="Ask"),
    "anatomy": st.Page("pages/anatomy.py", title="Look inside"),
    "masks": st.Page("pages/masks.py", title="Masks"),
    "data": st.Page("pages/data.py", title="Your data"),
}
page = st.navigation(list(pages.values()), position="top")

login()
st.session_state["_entered"] = True
target, query = st.session_state.pop("_deep_link", (None, None))
if target:
    st.switch_page(pages[target], query_params=query)
page.run()
st.set_page_config(page_icon="🔦")  # last: Streamlit takes a tenth of a second to know what an emoji is
