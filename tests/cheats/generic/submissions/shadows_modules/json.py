SHADOWED = True
print("GOT imported as", __name__)
