print("GOT run at start-up:", __name__)
