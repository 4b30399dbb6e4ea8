"""What operators watch, in the text format of Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

MEDIA_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """One server's numbers; each has a registry of its own, so that several can live in a process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "capedit_requests", "Answers, by route and status.", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "capedit_request_seconds",
            "From the first byte of a request to the last of its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.captions = Counter("capedit_captions", "Captions edited, by outcome.", ["outcome"], registry=self.registry)
        self.operations = Counter(
            "capedit_operations", "Words deleted and added.", ["operation"], registry=self.registry
        )
        self.images = Counter(
            "capedit_images", "Images asked for: encoded, or remembered.", ["how"], registry=self.registry
        )
        self.batch = Histogram(
            "capedit_batch_size",
            "Jobs computed together.",
            ["stage"],
            buckets=_SIZES,
            registry=self.registry,
        )
        self.compute_seconds = Histogram(
            "capedit_compute_seconds", "A batch of the networks.", ["stage"], buckets=_SECONDS, registry=self.registry
        )
        self.waiting = Gauge("capedit_waiting", "Captions in the house.", registry=self.registry)
        self.places = Gauge("capedit_places", "Captions that may be in the house at once.", registry=self.registry)
        self.remembered = Gauge("capedit_images_remembered", "Images kept in memory.", registry=self.registry)

    def text(self) -> bytes:
        return generate_latest(self.registry)
