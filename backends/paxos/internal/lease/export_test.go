package lease

// Stride is how far a limit rises at once.
const Stride = stride
