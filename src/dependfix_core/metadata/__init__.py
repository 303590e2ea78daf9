"""What registries say of packages, through one interface."""

from dependfix_core.metadata.base import MetadataSource, NoMetadata, RecordedMetadata

__all__ = ["MetadataSource", "NoMetadata", "RecordedMetadata"]
