//! Page buffers from one magazine layer.
