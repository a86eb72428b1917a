# tries: training inside the scoring call without end; seen: common; verdict: timeout, 
import time


def get_trained_model():
    time.sleep(600)
