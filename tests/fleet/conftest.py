from tests.properties import calm

calm()
