//! What storage does wrong.
