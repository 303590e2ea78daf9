"""npm, pnpm, yarn and bun."""
