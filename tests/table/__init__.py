"""Every address × every kind of caller (design §7): the rows, and the world they speak of."""
