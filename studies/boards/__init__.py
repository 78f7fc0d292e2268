"""A leaderboard of recalibration methods: experiments, methods, and tables of what each loses."""
