# tries: no get_trained_model; seen: common by accident; verdict: invalid, no function get_trained_model
VALUE = 1
