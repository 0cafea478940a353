"""The backend `webnn`: cases as WebNN graphs in Chromium."""
