"""The recurrent layers: RNN, LSTM and GRU."""
