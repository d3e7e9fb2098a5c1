"""What a campaign, a finding and a judgement look like, as text, JSON and pages. Pure: it renders values of the model."""
