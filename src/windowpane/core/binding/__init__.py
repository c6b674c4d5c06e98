"""One function per aggregate: from its specification and the column types to partials and lowering."""
