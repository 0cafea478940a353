"""Write a failing case in forms that other tools take: a DxDispatch model, a C++ program."""
