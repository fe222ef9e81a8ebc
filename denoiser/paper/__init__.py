"""The paper's other experiments: toy Gaussian, synthetic grids with EP and EPBP, and the figures on photographs."""
