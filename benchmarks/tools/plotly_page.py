"""A page with one `st.plotly_chart`, to measure the time to Streamlit's first figure."""

import plotly.graph_objects as go
import streamlit as st

st.plotly_chart(go.Figure(go.Heatmap(z=[[(7 * i * j) % 11 for i in range(12)] for j in range(11)])))
