"""The interfaces of DirectML, Direct3D 12, DXGI and DXCore, called through COM."""
