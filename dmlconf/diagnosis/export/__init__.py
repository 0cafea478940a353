"""Write a failing case in the formats of other tools: a DxDispatch model, a C++ program."""
