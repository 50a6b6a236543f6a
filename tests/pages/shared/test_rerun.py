"""A page that runs again by itself."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def again():
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    from pages.shared.session import rerun

    context = get_script_run_ctx()
    if "followed" not in st.session_state:
        st.session_state.followed = True
        context.script_requests.request_rerun(RerunData("word=followed", page_script_hash="another page"))
        rerun()
    st.write(context.query_string, context.page_script_hash)


def test_a_link_that_is_followed_just_before_the_page_runs_again_is_not_lost():
    page = AppTest.from_function(again).run()
    assert page.markdown[0].value == "word=followed another page"
