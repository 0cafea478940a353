"""The libraries DirectML, Direct3D 12, DXGI and DXCore: finding them, and their interfaces."""
